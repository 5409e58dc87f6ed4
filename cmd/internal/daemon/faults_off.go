//go:build !reinsfaults

package daemon

import "reins/protocol"

// faults returns no faults: a build that ships has none.
func faults() protocol.Seams { return protocol.Seams{} }
