//go:build !reinsfaults

package daemon

import "reins/protocol"

// faults returns no faults: a build that ships has none.
func faults() protocol.Seams { return protocol.Seams{} }

// planted puts nothing between the transport and the broker in a build that ships.
func (d *Daemon) planted(h protocol.Handler) protocol.Handler { return h }

// retryUncertain is a planted bug, which a build that ships does not have.
func (d *Daemon) retryUncertain() {}
