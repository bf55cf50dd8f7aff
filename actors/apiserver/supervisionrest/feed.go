package supervisionrest

import "strconv"

// feed numbers the states of the tree.
type feed struct{ began int64 }

func newFeed(tree Tree) *feed { return &feed{began: tree.Clock().Now().UnixMicro()} }

// revision is the number of the present state.
func (f *feed) revision() string { return strconv.FormatInt(f.began, 10) }

func (f *feed) close() {}
