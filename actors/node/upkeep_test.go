package node

import (
	"strings"
	"testing"
)

func TestStoreQuotaIsASize(t *testing.T) {
	for text, want := range map[string]int64{"": 8 << 30, "16Mi": 16 << 20, "2G": 2_000_000_000, "64Gi": 64 << 30} {
		c := Config{StoreQuota: text}.WithDefaults()
		if got, err := c.quotaBytes(); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"much", "0", "-8Gi", "15Mi", "65Gi"} {
		c := Config{StoreQuota: text}.WithDefaults()
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "storeQuota") || !strings.Contains(err.Error(), "for example 8Gi") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
