package engine

import (
	"context"
	"crypto/x509"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Access is what a client of the etcd protocol may do.
type Access int

// What a client may do; each includes what stands before it.
const (
	NoAccess Access = iota
	ReadAccess
	WriteAccess
)

// Reasons for refusing a call.
const (
	reasonAdmission = "writes must pass admission: use kubectl or another client of the Kubernetes API; to take writes here as well, start the node with --etcd-writes"
	reasonReader    = "the client certificate gives the right to read the store, not to write to it"
	reasonCert      = "the client certificate does not give the right to read the store"
	reasonAway      = "the store is being opened anew; try again"
	reasonUnserved  = "not served by this store"
	reasonMembers   = "not served by this store: the nodes look after its membership and its leader themselves"
	reasonVersion   = "not served by this store: its version is that of the node's program"
	reasonAuth      = "not served by this store: client certificates say who may read and write it"
)

// verdict is what happens to a call.
type verdict int

const (
	unserved verdict = iota // answers Unimplemented
	reading                 // goes to the member
	writing                 // goes to the member when writes are on, else answers PermissionDenied: it would go round admission
)

// rule is what happens to the calls of a method; why is said when it is unserved.
type rule struct {
	verdict verdict
	why     string
}

// rules decides by method; what is not named is unserved.
var rules = map[string]rule{
	"/etcdserverpb.KV/Range":               {verdict: reading},
	"/etcdserverpb.KV/RangeStream":         {verdict: reading},
	"/etcdserverpb.KV/Put":                 {verdict: writing},
	"/etcdserverpb.KV/DeleteRange":         {verdict: writing},
	"/etcdserverpb.KV/Txn":                 {verdict: writing},
	"/etcdserverpb.KV/Compact":             {verdict: writing},
	"/etcdserverpb.Watch/Watch":            {verdict: reading},
	"/etcdserverpb.Lease/LeaseGrant":       {verdict: writing},
	"/etcdserverpb.Lease/LeaseRevoke":      {verdict: writing},
	"/etcdserverpb.Lease/LeaseKeepAlive":   {verdict: writing},
	"/etcdserverpb.Lease/LeaseTimeToLive":  {verdict: reading},
	"/etcdserverpb.Lease/LeaseLeases":      {verdict: reading},
	"/etcdserverpb.Cluster/MemberList":     {verdict: reading},
	"/etcdserverpb.Cluster/MemberAdd":      {why: reasonMembers},
	"/etcdserverpb.Cluster/MemberRemove":   {why: reasonMembers},
	"/etcdserverpb.Cluster/MemberUpdate":   {why: reasonMembers},
	"/etcdserverpb.Cluster/MemberPromote":  {why: reasonMembers},
	"/etcdserverpb.Maintenance/Status":     {verdict: reading},
	"/etcdserverpb.Maintenance/Alarm":      {verdict: writing},
	"/etcdserverpb.Maintenance/Defragment": {verdict: reading},
	"/etcdserverpb.Maintenance/Snapshot":   {verdict: reading},
	"/etcdserverpb.Maintenance/Hash":       {verdict: reading},
	"/etcdserverpb.Maintenance/HashKV":     {verdict: reading},
	"/etcdserverpb.Maintenance/MoveLeader": {why: reasonMembers},
	"/etcdserverpb.Maintenance/Downgrade":  {why: reasonVersion},
	"/etcdserverpb.Auth/AuthEnable":        {why: reasonAuth},
	"/etcdserverpb.Auth/AuthDisable":       {why: reasonAuth},
	"/etcdserverpb.Auth/AuthStatus":        {why: reasonAuth},
	"/etcdserverpb.Auth/Authenticate":      {why: reasonAuth},
	"/etcdserverpb.Auth/UserList":          {why: reasonAuth},
	"/etcdserverpb.Auth/RoleList":          {why: reasonAuth},
	"/grpc.health.v1.Health/Check":         {verdict: reading},
	"/grpc.health.v1.Health/Watch":         {verdict: reading},
}

// decide is the verdict over one call; req is nil for a stream.
func decide(method string, req any) rule {
	r := rules[method]
	switch req := req.(type) {
	case *pb.TxnRequest:
		if !slices.ContainsFunc(operations(req), changes) {
			r.verdict = reading
		}
	case *pb.AlarmRequest:
		if req.Action == pb.AlarmRequest_GET {
			r.verdict = reading
		}
	}
	return r
}

// operations are those of both branches of a transaction.
func operations(r *pb.TxnRequest) []*pb.RequestOp { return slices.Concat(r.Success, r.Failure) }

// changes tells whether an operation of a transaction may change something.
func changes(op *pb.RequestOp) bool {
	if inner := op.GetRequestTxn(); inner != nil {
		return slices.ContainsFunc(operations(inner), changes)
	}
	return op.GetRequestRange() == nil
}

// adds tells whether an operation of a transaction may need room.
func adds(op *pb.RequestOp) bool {
	if inner := op.GetRequestTxn(); inner != nil {
		return slices.ContainsFunc(operations(inner), adds)
	}
	return op.GetRequestPut() != nil
}

// frees tells whether a write needs no room, so that it can be taken when there is none.
func frees(req any) bool {
	switch r := req.(type) {
	case *pb.PutRequest, *pb.LeaseGrantRequest:
		return false
	case *pb.TxnRequest:
		return !slices.ContainsFunc(operations(r), adds)
	}
	return true
}

// gate lets calls through to a member or answers them itself.
type gate struct {
	Serving
	// write does a write when the store takes one.
	write func(ctx context.Context, req any, do grpc.UnaryHandler) (any, error)
}

// check says what happens to a call, or why it is refused.
func (g gate) check(ctx context.Context, method string, req any) (verdict, error) {
	access := NoAccess
	if cert := peerCertificate(ctx); cert != nil {
		access = g.Authorize(cert)
	}
	r := decide(method, req)
	switch {
	case access < ReadAccess:
		return unserved, status.Error(codes.PermissionDenied, reasonCert)
	case r.verdict == unserved && r.why != "":
		return unserved, status.Error(codes.Unimplemented, r.why)
	case r.verdict == unserved:
		return unserved, status.Error(codes.Unimplemented, reasonUnserved)
	case r.verdict == writing && !g.Writes:
		return unserved, status.Error(codes.PermissionDenied, reasonAdmission)
	case r.verdict == writing && access < WriteAccess:
		return unserved, status.Error(codes.PermissionDenied, reasonReader)
	}
	return r.verdict, nil
}

func peerCertificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

func (g gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	verdict, err := g.check(ctx, info.FullMethod, req)
	if err != nil {
		return nil, err
	}
	switch r := req.(type) {
	case *pb.DefragmentRequest:
		// Done when it is worth its standstill, not when a client says so.
		return &pb.DefragmentResponse{}, nil
	case *pb.MemberListRequest:
		return g.members(ctx, r, next)
	case *pb.CompactionRequest:
		return g.compact(ctx, r, next)
	}
	if verdict == writing {
		return g.write(ctx, req, next)
	}
	return next(ctx, req)
}

// members is the answer of the member, with the address of this listener: the member itself knows of none.
func (g gate) members(ctx context.Context, r *pb.MemberListRequest, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, r)
	if list, ok := resp.(*pb.MemberListResponse); ok && g.URL != "" {
		for _, m := range list.Members {
			if m.ID == list.Header.MemberId && len(m.ClientURLs) == 0 {
				m.ClientURLs = []string{g.URL}
			}
		}
	}
	return resp, err
}

// compact forgets history in a way that the store's memory follows.
func (g gate) compact(ctx context.Context, r *pb.CompactionRequest, next grpc.UnaryHandler) (resp any, err error) {
	if g.Compact == nil {
		return g.write(ctx, r, next)
	}
	refused := g.Compact(ctx, r.Revision, func(ctx context.Context) error {
		resp, err = g.write(ctx, r, next)
		return err
	})
	if err == nil && refused != nil {
		return nil, grpcError(refused)
	}
	return resp, err
}

func (g gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if _, err := g.check(ss.Context(), info.FullMethod, nil); err != nil {
		if info.IsClientStream {
			// A client that is still sending its first question would see the end of the stream, not the reason.
			_ = ss.RecvMsg(&emptypb.Empty{})
		}
		return err
	}
	return next(srv, ss)
}
