// Package preview captures frames of a target only while somebody demands them.
//
// A demand has a time to live and a width; the widest demand wins; with none
// left the capture ends. Frames of an old generation and out-of-order ones are
// dropped. [Step] decides; the actor is its shell.
//
// Invariants:
//
//	I1  Without a live demand nothing is captured.
//	I2  At most one capture a target.
//	I3  A frame is published only under the current generation, with a growing sequence.
//	I4  Publishing never blocks the capture.
//
// Imported by cmd only.
package preview
