package hotloop

import (
	"fmt"
	"strings"
)

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// restless are the fields that a write may change without meaning anything by it.
var restless = map[string]bool{
	"managedFields": true, "resourceVersion": true, "generation": true, "observedGeneration": true, "selfLink": true,
}

// Meaning hashes an object in its JSON form (maps, slices and scalars). It leaves out versions, managed fields and every time, and does
// not look at the order of lists, so that two objects with the same meaning differ only in what makes a loop look like progress. It is
// never zero. A mistake costs a look too many or too few, nothing else: the hash decides about no write.
func Meaning(object any) uint64 {
	if h := meaning(object); h != 0 {
		return h
	}
	return 1
}

func meaning(v any) uint64 {
	switch v := v.(type) {
	case map[string]any:
		sum := uint64(1)
		for key, value := range v {
			if !isRestless(key) {
				sum += mix(hashString(fnvOffset, key), meaning(value))
			}
		}
		return mix(2, sum)
	case []any:
		sum := uint64(1)
		for _, value := range v {
			sum += mix(3, meaning(value))
		}
		return mix(4, sum)
	case string:
		return hashString(fnvOffset+5, v)
	case nil:
		return 6
	}
	return hashString(fnvOffset+7, fmt.Sprint(v))
}

func isRestless(key string) bool {
	return restless[key] || strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "Timestamp")
}

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// mix spreads two hashes over all bits, so that sums of them do not cancel out.
func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 ^ b
	x ^= x >> 29
	x *= 0xBF58476D1CE4E5B9
	return x ^ x>>32
}
