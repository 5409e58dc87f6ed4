package protocol

// Reason says in one word why an outcome is what it is. Programs branch on it.
type Reason string

// reasonDoc is one row of the table in docs/protocol.md.
type reasonDoc struct {
	Code Reason
	Doc  string
}

// The reason codes. [Reasons] lists them with what the caller should do.
const (
	ReasonUnknownMethod       Reason = "unknown_method"
	ReasonBadRequest          Reason = "bad_request"
	ReasonBadArguments        Reason = "bad_arguments"
	ReasonTooLarge            Reason = "message_too_large"
	ReasonNotText             Reason = "not_text"
	ReasonStaleConnection     Reason = "stale_connection"
	ReasonVersion             Reason = "version_mismatch"
	ReasonOperationIDReused   Reason = "operation_id_reused"
	ReasonUnknownOperation    Reason = "unknown_operation"
	ReasonDeadline            Reason = "deadline_exceeded"
	ReasonQueueTimeout        Reason = "queue_timeout"
	ReasonBusy                Reason = "busy"
	ReasonBudget              Reason = "budget_exhausted"
	ReasonNotAllowed          Reason = "not_allowed"
	ReasonApprovalRequired    Reason = "approval_required"
	ReasonHeldBy              Reason = "held_by"
	ReasonScopePaused         Reason = "scope_paused"
	ReasonScopeRestarted      Reason = "scope_restarted"
	ReasonStaleGeneration     Reason = "stale_generation"
	ReasonStaleObservation    Reason = "stale_observation"
	ReasonObserveRequired     Reason = "observe_required"
	ReasonTokenRequired       Reason = "observation_required"
	ReasonStaleRef            Reason = "stale_ref"
	ReasonStaleGeometry       Reason = "stale_geometry"
	ReasonUnknownResource     Reason = "unknown_resource"
	ReasonResourceUnavailable Reason = "resource_unavailable"
	ReasonResourceClosed      Reason = "resource_closed"
	ReasonRestoring           Reason = "restoring"
	ReasonCouldNotRestore     Reason = "could_not_restore"
	ReasonTooMany             Reason = "too_many"
	ReasonBackendUnavailable  Reason = "backend_unavailable"
	ReasonStorageUnavailable  Reason = "storage_unavailable"
	ReasonOutcomeNotStored    Reason = "outcome_not_stored"
	ReasonShuttingDown        Reason = "shutting_down"
	ReasonDaemonUnreachable   Reason = "daemon_unreachable"
	ReasonCancelled           Reason = "cancelled"
	ReasonRecovered           Reason = "recovered"
	ReasonAnswerLost          Reason = "answer_lost"
	ReasonFenced              Reason = "fenced"
	ReasonInternal            Reason = "internal_error"

	ReasonURLNotAllowed    Reason = "url_not_allowed"
	ReasonURLCredentials   Reason = "url_has_credentials"
	ReasonURLInvalid       Reason = "url_invalid"
	ReasonNameNotResolved  Reason = "name_not_resolved"
	ReasonConnRefused      Reason = "connection_refused"
	ReasonConnection       Reason = "connection_failed"
	ReasonCertificate      Reason = "certificate_error"
	ReasonNavigation       Reason = "navigation_failed"
	ReasonNavigationSlow   Reason = "navigation_timeout"
	ReasonNoHistory        Reason = "no_history"
	ReasonDownloadStarted  Reason = "download_started"
	ReasonDownloadFailed   Reason = "download_failed"
	ReasonNotFound         Reason = "not_found"
	ReasonAmbiguous        Reason = "ambiguous"
	ReasonNotVisible       Reason = "not_visible"
	ReasonDisabled         Reason = "disabled"
	ReasonReadOnly         Reason = "read_only"
	ReasonNotEditable      Reason = "not_editable"
	ReasonUnstable         Reason = "unstable"
	ReasonObscured         Reason = "obscured"
	ReasonOutside          Reason = "outside_viewport"
	ReasonMoved            Reason = "target_moved"
	ReasonNoEffect         Reason = "no_effect"
	ReasonValueMismatch    Reason = "editable_value_mismatch"
	ReasonTextNotTypable   Reason = "text_not_typable"
	ReasonDialogOpen       Reason = "dialog_open"
	ReasonNoDialog         Reason = "no_dialog"
	ReasonNavigated        Reason = "navigated"
	ReasonPopup            Reason = "popup_opened"
	ReasonUnknownKey       Reason = "unknown_key"
	ReasonCaptureFailed    Reason = "capture_failed"
	ReasonImageTooLarge    Reason = "image_too_large"
	ReasonSensitive        Reason = "sensitive_assertion"
	ReasonAssertionFailed  Reason = "assertion_failed"
	ReasonWaitTimeout      Reason = "wait_timeout"
	ReasonRendererCrashed  Reason = "renderer_crashed"
	ReasonPageUnresponsive Reason = "page_unresponsive"
)

var reasonDocs = []reasonDoc{
	{ReasonUnknownMethod, "No such method. Use one that the table of methods names."},
	{ReasonBadRequest, "The message is not a request. The message says which field is wrong."},
	{ReasonBadArguments, "An argument is missing, unknown, of the wrong type or out of range; the message names it and its range."},
	{ReasonTooLarge, "The message is over the size limit. Send less, or in several operations."},
	{ReasonNotText, "Text is not valid UTF-8 or has a NUL byte. Encode it as UTF-8 without NUL."},
	{ReasonStaleConnection, "The connection's nonce is unknown: the daemon restarted or the message is a late copy. Connect anew, look, and decide again."},
	{ReasonVersion, "The client speaks another major version of the protocol. Use the client that belongs to this daemon."},
	{ReasonOperationIDReused, "This operation id was used for something else. Choose a new id for a new operation."},
	{ReasonUnknownOperation, "No operation of this owner has that id: it never arrived, only waited, or is older than what is kept."},
	{ReasonDeadline, "The deadline passed. If the state is refused or cancelled nothing happened; send again with a later deadline."},
	{ReasonQueueTimeout, "The operation waited longer than the queue allows. Nothing happened; send again when the target is less busy."},
	{ReasonBusy, "The queue of this target is full. Nothing happened; wait for answers before sending more."},
	{ReasonBudget, "The budget of this user turn is used up. A new message of the person opens a new one."},
	{ReasonNotAllowed, "Policy does not allow this owner to do that here."},
	{ReasonApprovalRequired, "A person has to approve this first. Wait for the approval, look, and send again."},
	{ReasonHeldBy, "Another owner holds this target; held_by names it. Wait until it lets go, or use another target."},
	{ReasonScopePaused, "A person has control. Wait for control, then observe."},
	{ReasonScopeRestarted, "The scope of this target restarted. Nothing happened; observe and send again."},
	{ReasonStaleGeneration, "The target has a newer incarnation than the request names. Observe and use its generation."},
	{ReasonStaleObservation, "Something else happened since that observation. Observe again and use the new token."},
	{ReasonObserveRequired, "The state after an uncertain operation or a restart is not known. Observe, then send with the new token."},
	{ReasonTokenRequired, "Coordinates need the token of the observation they were read from."},
	{ReasonStaleRef, "The element of this ref is gone or is no longer what it was. Observe and use its new ref."},
	{ReasonStaleGeometry, "The page scrolled or changed size since the coordinates were read. Observe and read them again."},
	{ReasonUnknownResource, "No resource has that id. List the resources, or open one."},
	{ReasonResourceUnavailable, "The resource is not reachable now. Its record says why."},
	{ReasonResourceClosed, "The resource was closed and stays closed. Open a new one."},
	{ReasonRestoring, "The target is coming back after a fault. Observe: the observation waits until it is there."},
	{ReasonCouldNotRestore, "The target could not be brought back; the record says why. An observation tries once more."},
	{ReasonTooMany, "The ceiling on targets is reached. Close one, or raise the ceiling."},
	{ReasonBackendUnavailable, "What the target runs in (a browser) cannot be started; the message names it and the way out."},
	{ReasonStorageUnavailable, "The disk of the store is full or failing, so nothing can be recorded and nothing is done. Free space; the daemon goes on by itself."},
	{ReasonOutcomeNotStored, "It was done, but the outcome could not be stored, so it stays uncertain. Observe before acting."},
	{ReasonShuttingDown, "The daemon is stopping. Nothing happened; send again when it runs."},
	{ReasonDaemonUnreachable, "No daemon answers. Start one with `reins serve`, or name its state directory."},
	{ReasonCancelled, "Cancelled by its owner or a person."},
	{ReasonRecovered, "The daemon died meanwhile; this is what its log could still tell."},
	{ReasonAnswerLost, "Input was given and its answer never came. It may or may not have had its effect; it is not sent again. Observe."},
	{ReasonFenced, "The incarnation of the target ended in the middle of it. It may or may not have had its effect. Observe."},
	{ReasonInternal, "A fault inside reins; the log has it. If the state is refused nothing happened."},
	{ReasonURLNotAllowed, "Only http:, https: and about:blank may be opened."},
	{ReasonURLCredentials, "The URL has a user name or password in it. Leave them out."},
	{ReasonURLInvalid, "That is not a URL. Give a whole one, as https://example.org/path."},
	{ReasonNameNotResolved, "The host's name has no address. Check the spelling and the network."},
	{ReasonConnRefused, "Nothing listens at that address. Check the port, or start the server."},
	{ReasonConnection, "The connection to the server failed. Check the network and try again."},
	{ReasonCertificate, "The server's certificate is not valid. It is never accepted on its own."},
	{ReasonNavigation, "The page could not be loaded; the message has the browser's word for it."},
	{ReasonNavigationSlow, "The server did not answer within the deadline. The page may still arrive: observe."},
	{ReasonNoHistory, "There is no page in that direction of the history."},
	{ReasonDownloadStarted, "The address delivered a file instead of a page; the page stays as it was."},
	{ReasonDownloadFailed, "The file did not arrive whole."},
	{ReasonNotFound, "No element matches. Observe, and use a locator from what is there."},
	{ReasonAmbiguous, "Several elements match; the candidates are named. Use one's ref or a narrower locator."},
	{ReasonNotVisible, "The element is not visible. Bring it into view by what shows it, then try again."},
	{ReasonDisabled, "The element is disabled."},
	{ReasonReadOnly, "The field is read-only."},
	{ReasonNotEditable, "The element takes no text."},
	{ReasonUnstable, "The element keeps moving. Wait until it rests."},
	{ReasonObscured, "Something covers the element; the message names it. Move or close that first."},
	{ReasonOutside, "The point is outside of what is shown."},
	{ReasonMoved, "The element moved away between the check and the press. Observe and try again."},
	{ReasonNoEffect, "Input was given and did not reach the element. Observe."},
	{ReasonValueMismatch, "The field holds something else than was entered; actual_value has it. Observe."},
	{ReasonTextNotTypable, "The text has characters that cannot be typed as keys here. Use fill."},
	{ReasonDialogOpen, "A dialog is open and has to be answered with the method dialog first."},
	{ReasonNoDialog, "No dialog is open."},
	{ReasonNavigated, "The page navigated in the middle of the list; the rest was not done."},
	{ReasonPopup, "A new page opened in the middle of the list; the rest was not done."},
	{ReasonUnknownKey, "No such key. Use a name such as Enter, ArrowLeft, a, or Control+A."},
	{ReasonCaptureFailed, "No picture could be taken."},
	{ReasonImageTooLarge, "The picture is over the message limit. Ask for jpeg or a smaller viewport."},
	{ReasonSensitive, "The assertion contains a secret of the page and is not evaluated."},
	{ReasonAssertionFailed, "The assertion does not hold; actual has what was found."},
	{ReasonWaitTimeout, "It did not happen within the deadline."},
	{ReasonRendererCrashed, "The page's process crashed. It comes back as a new generation; observe."},
	{ReasonPageUnresponsive, "The page does not answer. Wait, or restart it."},
}

// Reasons calls yield with each reason code and its documentation, in the order of the docs.
func Reasons(yield func(code Reason, doc string) bool) {
	for _, r := range reasonDocs {
		if !yield(r.Code, r.Doc) {
			return
		}
	}
}

// Sentence returns what the caller should know and do about a reason.
func (r Reason) Sentence() string {
	for _, d := range reasonDocs {
		if d.Code == r {
			return d.Doc
		}
	}
	return ""
}
