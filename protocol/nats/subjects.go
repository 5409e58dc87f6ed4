package nats

import (
	"strings"

	"reins/protocol"
)

// The subjects of requests. Each takes a JSON object and answers with one to
// the reply subject, which has to be below _INBOX_<owner>. All but hello need
// the headers [HeaderVersion], [HeaderConnection] and [HeaderExpires]. An answer
// that is no receipt may hold {"problem": …} instead of what was asked for.
const (
	// SubjectHello opens a connection: Hello, answered by HelloReply. Its nonce goes into every other request.
	SubjectHello = "reins.v1.<owner>.hello"
	// SubjectAlive says that the connection still lives, every 10 s: {}, answered by {}. A reply subject may be left out.
	SubjectAlive = "reins.v1.<owner>.alive"
	// SubjectBye ends the connection: {}, answered by {}. A reply subject may be left out.
	SubjectBye = "reins.v1.<owner>.bye"
	// SubjectDo runs a write: Request, answered by Receipt.
	SubjectDo = "reins.v1.<owner>.do"
	// SubjectCancel asks that an operation stops: {"operation_id"}, answered by its Receipt.
	SubjectCancel = "reins.v1.<owner>.cancel"
	// SubjectReceipt asks what became of an operation: {"operation_id"}, answered by its Receipt.
	SubjectReceipt = "reins.v1.<owner>.receipt"
	// SubjectRead looks at a target: ReadRequest, answered by ReadReply with the bytes of a picture behind the JSON ([HeaderJSONLength]).
	SubjectRead = "reins.v1.<owner>.read"
	// SubjectClaim takes the lease of a Page: {"resource"}, answered by {} or {"problem"}.
	SubjectClaim = "reins.v1.<owner>.claim"
	// SubjectRelease gives the lease of a Page up: {"resource"}, answered by {} or {"problem"}.
	SubjectRelease = "reins.v1.<owner>.release"
	// SubjectRestart starts a failed resource again, or a ready one anew: {"resource"}, answered by {} or {"problem"}.
	SubjectRestart = "reins.v1.<owner>.restart"
	// SubjectResources lists the resources: {}, answered by {"resources": list of Record}.
	SubjectResources = "reins.v1.<owner>.resources"
	// SubjectHistory asks for history: HistoryQuery, answered by {"history": list of HistoryEntry}.
	SubjectHistory = "reins.v1.<owner>.history"
	// SubjectDemand asks for preview frames for a while: Demand, answered by {} or {"problem"}.
	SubjectDemand = "reins.v1.<owner>.demand"
	// SubjectStatus asks how the daemon is: {}, answered by Status.
	SubjectStatus = "reins.v1.<owner>.status"
)

// The subjects on which the daemon tells everybody what happens.
const (
	// SubjectCue has each Cue as JSON.
	SubjectCue = "reins.v1.cue.<resource>"
	// SubjectFrame has preview frames: the payload is the picture, [HeaderFrame] its FrameHeader. Only the latest counts.
	SubjectFrame = "reins.v1.frame.<resource>"
	// SubjectRecord has the Record of a resource as JSON whenever it changes. Only the latest counts.
	SubjectRecord = "reins.v1.record.<resource>"
)

// The headers of messages.
const (
	// HeaderVersion is the protocol's major version, in every request.
	HeaderVersion = "Reins-Version"
	// HeaderConnection is the nonce that hello gave, in every request but hello.
	HeaderConnection = "Reins-Connection"
	// HeaderUserTurn names the message or task of a person that a request
	// belongs to, 1–128 bytes of printable ASCII; left out it is the connection.
	HeaderUserTurn = "Reins-User-Turn"
	// HeaderExpires is when a request becomes too late to be begun, in
	// milliseconds since 1970 by the daemon's clock, in every request but hello.
	HeaderExpires = "Reins-Expires"
	// HeaderNow is the daemon's clock in milliseconds since 1970, in every
	// answer, so that a client whose clock differs can reckon expiries.
	HeaderNow = "Reins-Now"
	// HeaderJSONLength is how many bytes of an answer are its JSON; the rest is
	// a picture. Left out, all of them are.
	HeaderJSONLength = "Reins-JSON-Length"
	// HeaderFrame is the FrameHeader of a preview frame, as JSON.
	HeaderFrame = "Reins-Frame"
)

// Subject is a row of [Subjects].
type Subject struct {
	// Pattern has <owner> or <resource> where the name of one goes.
	Pattern string
	// Message and Answer name the types of package protocol, or say the fields
	// in words. Answer is empty where the daemon publishes.
	Message, Answer string
}

// Subjects lists every subject. Nothing else is served or published.
var Subjects = []Subject{
	{SubjectHello, "Hello", "HelloReply"},
	{SubjectAlive, "{}", "{}"},
	{SubjectBye, "{}", "{}"},
	{SubjectDo, "Request", "Receipt"},
	{SubjectCancel, "{operation_id}", "Receipt"},
	{SubjectReceipt, "{operation_id}", "Receipt"},
	{SubjectRead, "ReadRequest", "ReadReply, then the bytes of its picture"},
	{SubjectClaim, "{resource}", "{problem}"},
	{SubjectRelease, "{resource}", "{problem}"},
	{SubjectRestart, "{resource}", "{problem}"},
	{SubjectResources, "{}", "{resources, problem}"},
	{SubjectHistory, "HistoryQuery", "{history, problem}"},
	{SubjectDemand, "Demand", "{problem}"},
	{SubjectStatus, "{}", "Status, or {problem}"},
	{SubjectCue, "Cue", ""},
	{SubjectFrame, "the bytes of a picture", ""},
	{SubjectRecord, "Record", ""},
}

const (
	ownerToken    = "<owner>"
	resourceToken = "<resource>"
)

// withOwner is a subject of requests for one owner, or "*" for all.
func withOwner(pattern string, owner protocol.OwnerID) string {
	return strings.Replace(pattern, ownerToken, string(owner), 1)
}

// withResource is a subject of publications for one resource, or "*" for all.
func withResource(pattern string, id protocol.ResourceID) string {
	return strings.Replace(pattern, resourceToken, string(id), 1)
}

// ownerOf reads the owner out of a subject of a pattern.
func ownerOf(pattern, subject string) (protocol.OwnerID, bool) {
	before, after, _ := strings.Cut(pattern, ownerToken)
	rest, ok := strings.CutPrefix(subject, before)
	if !ok {
		return "", false
	}
	name, ok := strings.CutSuffix(rest, after)
	return protocol.OwnerID(name), ok && CheckOwner(name) == nil
}

// InboxPrefix is where the answers of an owner's requests go: the only place
// below which its connections may wait for them.
func InboxPrefix(owner protocol.OwnerID) string { return "_INBOX_" + string(owner) }

// OwnerMayPublish lists the subjects that the connections of an owner may publish on.
func OwnerMayPublish(owner protocol.OwnerID) []string {
	return []string{"reins.v1." + string(owner) + ".>"}
}

// OwnerMaySubscribe lists the subjects that the connections of an owner may subscribe to.
func OwnerMaySubscribe(owner protocol.OwnerID) []string {
	return []string{InboxPrefix(owner) + ".>", "reins.v1.cue.>", "reins.v1.frame.>", "reins.v1.record.>"}
}

// isToken reports whether an id can be one token of a subject.
func isToken(id protocol.ResourceID) bool {
	return protocol.CheckID("resource", string(id)) == nil && !strings.ContainsAny(string(id), ".*>")
}
