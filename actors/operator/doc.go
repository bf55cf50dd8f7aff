// Package operator is for operators of one's own: one writes a typed specification and a function that brings about what it declares;
// everything else is the same for all.
//
// A whole program, whose operator goes on until it is interrupted:
//
//	package main
//
//	type Page struct {
//		Title string `json:"title"`
//	}
//
//	func (Page) Kind() string { return "Page" }
//
//	func publish(ctx context.Context, s *operator.ManifestState[Page]) (operator.Action, error) {
//		fmt.Println("publishing", s.Manifest.Name, "as", s.Manifest.Spec.Title)
//		return operator.None(), s.SetStatus(map[string]string{"published": s.Manifest.Spec.Title})
//	}
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		pages, err := operator.NewControlPlane(operator.Func[Page](publish), operator.OperatorConfig{}, storage.Memory())
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := pages.AddManifest(ctx, "front", Page{Title: "Welcome"}); err != nil {
//			log.Fatal(err)
//		}
//		log.Println(pages.Execute(ctx))
//	}
//
// # Three places
//
// The same operator runs without a change on its own, as above, with a store of package storage: in memory, in a file, or shared by several
// processes; inside a node, where its kind is a custom resource (package served); and in tests under virtual time (package operatortest).
//
// # Duties of an operator
//
//  1. Reconcile brings one manifest closer to what it declares and returns. It is called again; it need not finish, and must not wait for
//     long: it asks to be run again (Requeue).
//  2. It bears being run again at any time, from the start, also when nothing has changed.
//  3. It returns when its context ends. A pass that goes on regardless is given up.
//  4. It changes status, conditions and finalizers through the state, and nothing else of the manifest.
//  5. What it writes as status says how things are, not when they were looked at: a status that is another at every pass is written at every
//     pass.
//  6. It keeps nothing in memory that it could not lose: the next pass may run in another process.
//  7. It reads other kinds by Get and List, and declares them.
//  8. Before an effect outside the store that must not come too late it asks Fenced, or sends the epoch of Fence along.
//
// # What it can rely on
//
//   - A change starts a pass at once; what follows within 50 ms becomes one more. Storing the same content again is no change.
//   - At most one pass of a manifest runs at a time, in all processes that share the store. Should one be wrong about that, because it was
//     stopped or cut off for instance, the store refuses what its passes come to, and Fenced says so.
//   - Without any change a pass runs once per Resync.
//   - What a pass does to the state is stored in one write when it returns nil, and not written if it says what is stored already. What a
//     failed pass did to the state is dropped.
//   - A failed pass is run again after 1 s, 2 s, 4 s … 60 s, each give or take a fifth. The count is stored, so another process goes on with
//     it. A change brings the next pass within a second.
//   - With a Finalize method, a deleted manifest stays until it has returned nil, and it is not run again after that.
//   - The trouble of one manifest is no other's: each has an actor of its own.
//   - When Execute is told to stop, passes are called off, leases are given back as passes end, and others go on at once.
//
// # What becomes of bad input
//
//	what                                       what is seen
//	Reconcile panics                           phase Retrying, the panic in lastError, attempts counted; after five in a minute phase
//	                                           Parked, tried once a minute and at the next change
//	Reconcile ends its goroutine               the same, with "the pass ended its goroutine" in lastError
//	Reconcile takes longer than its time       its context ends; phase Retrying with the error that it returns
//	Reconcile hangs                            given up ten seconds later: phase Retrying, "did not end in time"; its lease is released, so
//	                                           that what it does later is refused, and the next pass has another epoch
//	Reconcile returns an error                 phase Retrying with the error, attempts and next try
//	Reconcile returns an error whose methods   the same, with "its Error method panicked" in lastError
//	panic, as a nil pointer's do
//	Reconcile asks to requeue in the past      the same, with ErrRequeuePast
//	Reconcile changes name, namespace,         the same, with ErrManifestChanged; nothing that it did is stored
//	specification or metadata of its manifest
//	Reconcile stores another status each time  phase Parked and condition HotLoop, after some ten seconds; it pauses 10 s, 20 s … 5 min. One that
//	                                           asks to be run again no sooner than in 10 s is taken to look at something that changes.
//	Reconcile reads a kind it does not declare Get and List return ErrUndeclaredRead
//	what tells whom a read concerns panics     nobody is woken by that object; an error in the log names it
//	Finalize fails                             phase Deleting with the error, attempts and next try
//	a status that does not serialise           SetStatus returns an error and changes nothing
//	a type that does not serialise, or whose   NewControlPlane returns ErrSpecification and names the field
//	schema cannot be derived
//	a value that does not serialise            AddManifest returns the error and stores nothing
//	a name with a slash, colon or control      AddManifest returns ErrName
//	character, or that is not valid UTF-8
//	an operator that is a nil function or      Execute and NewRunner return an error that says so
//	pointer
//	two operators for one kind, or one         Execute returns ErrKindTaken
//	executed twice at a time
//
// All of it is counted in Stats. Every manifest but the bad one goes on as if there were no bad one.
//
// # Glossary
//
// A manifest is what a user wants, a specification what it says. A pass is one run of Reconcile or Finalize. A plane is an operator with a
// store. The epoch of a lease goes up with each holder. An action is what a pass wants next. A record is a manifest as it is stored.
package operator
