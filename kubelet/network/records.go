package network

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// record is what the ledger keeps of one pod.
type record struct {
	Addr netip.Addr `json:"addr"`
	Link string     `json:"link"` // name of the host end
	Path string     `json:"path"` // of the pod's network namespace
}

// load reads all records. One that cannot be read is dropped: its link, if any, goes with the next Sweep.
func (n *Network) load() error {
	var broken []string
	err := n.cfg.Ledger.Each(bucket, func(uid string, raw []byte) error {
		var r record
		if json.Unmarshal(raw, &r) != nil || !n.owns(r.Link) {
			broken = append(broken, uid)
			return nil
		}
		n.pods[uid] = r
		if n.alloc.usable(r.Addr) && n.alloc.last.Less(r.Addr) {
			n.alloc.last = r.Addr
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot read the pods' addresses: %w", err)
	}
	for _, uid := range broken {
		n.log.Warn("record of a pod's address is not readable and is dropped", "pod", uid)
		if err := n.cfg.Ledger.Delete(bucket, uid); err != nil {
			return fmt.Errorf("cannot drop the address of pod %s: %w", uid, err)
		}
	}
	return nil
}

// reserve gives the record of a pod, and writes it if it is new or changed.
func (n *Network) reserve(uid, path string) (record, error) {
	r, ok := n.pods[uid]
	if ok && r.Path == path && n.alloc.usable(r.Addr) {
		return r, nil
	}
	if !ok {
		r.Link = n.freeLinkName(uid)
	}
	if !n.alloc.usable(r.Addr) {
		addr, ok := n.alloc.next(n.taken)
		if !ok {
			return record{}, ErrFull
		}
		r.Addr = addr
	}
	r.Path = path
	if err := n.cfg.Ledger.Put(bucket, uid, r); err != nil {
		return record{}, fmt.Errorf("cannot record the address: %w", err)
	}
	n.pods[uid] = r
	return r, nil
}

func (n *Network) release(uid string) error {
	if err := n.cfg.Ledger.Delete(bucket, uid); err != nil {
		return fmt.Errorf("cannot forget the address: %w", err)
	}
	delete(n.pods, uid)
	return nil
}

func (n *Network) taken(addr netip.Addr) bool {
	for _, r := range n.pods {
		if r.Addr == addr {
			return true
		}
	}
	return false
}

// freeLinkName names a host end after its pod, with another hash should two pods' hashes meet.
func (n *Network) freeLinkName(uid string) string {
	for salt := 0; ; salt++ {
		name := linkName(n.cfg.Prefix, uid, salt)
		if !n.linkTaken(name) {
			return name
		}
	}
}

func (n *Network) linkTaken(name string) bool {
	for _, r := range n.pods {
		if r.Link == name {
			return true
		}
	}
	return false
}

func linkName(prefix, uid string, salt int) string {
	hash := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %d", uid, salt)))
	start := prefix + "v"
	return start + hash[:maxLinkName-len(start)]
}

// owns reports whether a link's name is one of this node's host ends.
func (n *Network) owns(link string) bool { return strings.HasPrefix(link, n.cfg.Prefix+"v") }
