package supervision

// zombie is a generation that was left behind.
type zombie struct {
	Zombie
	cell *cell
}

// leaveBehind lists a generation that is given up, until it comes back.
func (s *System) leaveBehind(c *cell, stack []byte) {
	z := &zombie{Zombie{Generation: c.gen, Since: s.clock.Now(), Fault: c.slot.failedOf(c.gen), Stack: string(stack)}, c}
	if len(stack) > 0 {
		z.StackHash = Fault{Kind: Hang, Stack: stack}.StackHash()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	gone := c.returned || c.phase == closed && !c.zombie
	c.mu.Unlock()
	if gone || c.left {
		return
	}
	c.left = true
	s.left[c.slot.path] = append(s.left[c.slot.path], z)
}

// cameBack takes a generation off the list: nothing of it runs any more.
func (s *System) cameBack(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.left {
		return
	}
	path := c.slot.path
	// A new list, because Inspect may still read the old one.
	var rest []*zombie
	for _, z := range s.left[path] {
		if z.cell != c {
			rest = append(rest, z)
		}
	}
	if s.left[path] = rest; len(rest) == 0 {
		delete(s.left, path)
	}
}
