package identity

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// root is a file of keys, and what it means when it is gone.
type root struct{ file, means string }

// roots are the files that cannot be made again as they were, in the order in which they are made.
var roots = []root{
	{authorityFile, "all certificates and kubeconfigs it has signed are invalid, of other hosts and people too"},
	{frontProxyAuthorityFile, "extension API servers refuse the requests of this one until they have read the new authority"},
	{serviceAccountFile, "all ServiceAccount tokens issued so far are invalid: pods get new ones when they are started anew, others have to ask for new ones"},
}

// noteLost says loudly which of the roots are gone while others are there: they are made anew, which is no first start.
func (i *Identity) noteLost() {
	lost := slices.DeleteFunc(slices.Clone(roots), func(r root) bool { return !i.lacks(r.file) })
	if len(lost) == len(roots) {
		return
	}
	for _, r := range lost {
		i.log.Error("a key of the cluster is gone and is made anew; to undo that, stop the node and put the file back from a copy",
			"file", filepath.Join(i.dir, r.file), "consequence", r.means)
	}
}

// lacks tells whether there is no such file.
func (i *Identity) lacks(file string) bool {
	_, err := os.Stat(filepath.Join(i.dir, file))
	return errors.Is(err, fs.ErrNotExist)
}
