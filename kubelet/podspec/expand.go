package podspec

import "strings"

// Expand replaces $(NAME) by lookup's value; $$ stands for one $, and a name lookup does not know stays as written.
func Expand(s string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			i += reference(&b, s[i:], lookup) - 1
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

// reference writes the value of the reference s begins with and returns its length in s.
func reference(b *strings.Builder, s string, lookup func(string) (string, bool)) int {
	end := strings.IndexByte(s, ')')
	if end < 0 {
		b.WriteString("$(")
		return 2
	}
	if v, ok := lookup(s[2:end]); ok {
		b.WriteString(v)
	} else {
		b.WriteString(s[:end+1])
	}
	return end + 1
}
