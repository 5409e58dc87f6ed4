package page

import (
	"context"

	"reins/protocol"
)

// download is a file that a Page is delivering.
type download struct {
	guid string
	name string // as the page suggested it
	url  string
}

// downloads delivers the downloads that begin in p from now on, also in pages
// that p opened. cancel closes the channel; what has begun goes on.
func (h *Host) downloads(p *incarnation) (begun <-chan *download, cancel func()) {
	return nil, func() {}
}

// wait waits until the file is whole and in the download directory.
func (d *download) wait(ctx context.Context) (protocol.Download, error) {
	return protocol.Download{}, ctx.Err()
}
