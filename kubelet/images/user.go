package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/moby/sys/user"
)

// ResolveUser turns the user a container runs as, in the form "user", "uid", "user:group", "uid:gid" or "", into numbers
// by the image's own /etc/passwd and /etc/group. "" is root. A numeric user needs no entry there; a name without one is
// an error. groups are the additional groups /etc/group lists for the user.
func ResolveUser(img Image, spec string) (uid, gid int, groups []int, err error) {
	found, err := execUser(img, spec)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("cannot resolve user %q of image %s: %w", spec, img.Ref, err)
	}
	return found.Uid, found.Gid, found.Sgids, nil
}

// HomeDir gives the home directory of a user by the image's /etc/passwd, "/" if it says none.
func HomeDir(img Image, spec string) string {
	if found, err := execUser(img, spec); err == nil && found.Home != "" {
		return found.Home
	}
	return "/"
}

func execUser(img Image, spec string) (*user.ExecUser, error) {
	layers, err := openStack(img.Layers)
	if err != nil {
		return nil, err
	}
	defer layers.close()
	passwd, closePasswd, err := layers.openOptional("etc/passwd")
	if err != nil {
		return nil, err
	}
	defer closePasswd()
	group, closeGroup, err := layers.openOptional("etc/group")
	if err != nil {
		return nil, err
	}
	defer closeGroup()
	return user.GetExecUser(spec, &user.ExecUser{Home: "/"}, passwd, group)
}

// openOptional opens a file that an image need not have. An absent one gives a nil reader.
func (s stack) openOptional(name string) (io.Reader, func(), error) {
	f, err := s.open(name)
	switch {
	case err == nil:
		return f, func() { f.Close() }, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, os.ErrInvalid):
		return nil, func() {}, nil
	}
	return nil, nil, err
}
