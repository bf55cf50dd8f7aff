package core

// name returns the name of a value of a closed list whose zero value means unset.
func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "invalid"
}

// String is the kind's name.
func (k Kind) String() string { return name([]string{"unset", "worker", "supervisor"}, uint8(k)) }

// String is the restart type's name.
func (r Restart) String() string {
	return name([]string{"unset", "permanent", "transient", "temporary"}, uint8(r))
}

// String is the strategy's name.
func (s Strategy) String() string {
	return name([]string{"unset", "one_for_one", "one_for_all", "rest_for_one", "pool"}, uint8(s))
}

// String is the reaction's name.
func (r ReactionKind) String() string {
	return name([]string{"unset", "restart", "stop", "escalate", "park"}, uint8(r))
}

// String is the overflow policy's name.
func (o Overflow) String() string {
	return name([]string{"unset", "reject-newest", "drop-oldest", "fault"}, uint8(o))
}
