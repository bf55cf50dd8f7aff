package health

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeactor/nodeactor/supervision"
)

// The series of actors. All have the path and the row of the catalog.
var (
	statesDesc     = actorDesc("nodeactor_actors", "Actors by state: starting, running, backing-off, parked, dead and so on.", "state")
	aliveDesc      = actorDesc("nodeactor_actor_alive", "1 while an actor is alive. Members of pools are left out.")
	generationDesc = actorDesc("nodeactor_actor_generation", "Number of an actor's present life. Members of pools are left out.")
	restartsDesc   = actorDesc("nodeactor_actor_restarts_total", "Restarts of an actor since its supervisor was started. Members of pools are left out.")
	hungDesc       = actorDesc("nodeactor_actors_hung", "Actors that have been silent for longer than they may.")
	leftDesc       = actorDesc("nodeactor_actor_zombies", "Generations of an actor that were left behind and still run.")
	mailboxDesc    = actorDesc("nodeactor_actor_mailbox_messages", "Messages that wait for an actor.")
	oldestDesc     = actorDesc("nodeactor_actor_oldest_message_seconds", "Age of the oldest message that waits for an actor.")
	messagesDesc   = actorDesc("nodeactor_actor_messages_total", "Messages that an actor has taken, over all its generations.")
	cpuDesc        = actorDesc("nodeactor_actor_cpu_cores", "Share of one core that an actor used when CPU shares were last measured.")

	actorDescs = []*prometheus.Desc{statesDesc, aliveDesc, generationDesc, restartsDesc, hungDesc, leftDesc, mailboxDesc, oldestDesc, messagesDesc, cpuDesc}
)

func actorDesc(name, help string, more ...string) *prometheus.Desc {
	return desc(name, help, append([]string{"path", "row"}, more...)...)
}

// family is what is known of one actor, or of all members of one pool.
type family struct {
	row    string
	states map[supervision.State]int
	hung   int
	left   int
	mail   int
	oldest float64
	cpu    float64
	// one is the actor itself where it is not a pool's member.
	one *supervision.Node
}

// families reads the whole tree, a piece at a time.
func (c *Collector) families(pools pools, cpu map[string]float64) map[string]*family {
	all := map[string]*family{}
	c.System.Scan("", func(n supervision.Node) bool {
		path := pools.family(n.Path)
		f := all[path]
		if f == nil {
			f = &family{row: n.Row, states: map[supervision.State]int{}}
			all[path] = f
		}
		f.add(&n, cpu[n.Path])
		if path == n.Path {
			f.one = &n
		}
		return true
	})
	return all
}

func (f *family) add(n *supervision.Node, cpu float64) {
	f.states[n.State]++
	f.left += n.Abandoned
	f.mail += n.Mailbox
	f.oldest = max(f.oldest, n.OldestFor.Seconds())
	f.cpu += cpu
	if n.Hung {
		f.hung++
	}
}

func (c *Collector) collectActors(out samples, pools pools) {
	handled, cpu := c.System.Handled(), map[string]float64(nil)
	if last := c.System.LastCPU(); last != nil {
		cpu = last.ByPath
	}
	for path, f := range c.families(pools, cpu) {
		labels := []string{short(path, c.Root), f.row}
		f.collect(out, labels)
		if cpu != nil {
			out.gauge(cpuDesc, f.cpu, labels...)
		}
		out.counter(messagesDesc, float64(handled[path]), labels...)
	}
}

func (f *family) collect(out samples, labels []string) {
	for state, n := range f.states {
		out.gauge(statesDesc, float64(n), append(labels[:2:2], state.String())...)
	}
	out.gauge(hungDesc, float64(f.hung), labels...)
	out.gauge(leftDesc, float64(f.left), labels...)
	out.gauge(mailboxDesc, float64(f.mail), labels...)
	out.gauge(oldestDesc, f.oldest, labels...)
	if f.one == nil {
		return
	}
	alive := 0.0
	if judge(*f.one) == nil {
		alive = 1
	}
	out.gauge(aliveDesc, alive, labels...)
	out.gauge(generationDesc, float64(f.one.Generation), labels...)
	out.counter(restartsDesc, float64(f.one.Restarts), labels...)
}
