package execution

import "verbatim.internal/pkg/domain/identity"

// OpeningFields are what opens an execution as it was sent: what is absent is nil.
type OpeningFields struct {
	SwarmID             string
	ManagerDeploymentID *string
	DeploymentID        *string
	CorrelationID       *string
	RunID               *string
}

// Opening is what an execution is opened with, for good. What was not said is "".
type Opening struct {
	SwarmID             string
	ManagerDeploymentID string
	DeploymentID        string
	CorrelationID       string
	// RunID is the authorization run that the execution belongs to.
	RunID identity.UUID
}

// NewOpening validates an opening, else InvalidRequest: all ids are names, the
// authorization run is a UUID.
func NewOpening(f OpeningFields) (Opening, error) {
	var read form
	o := Opening{
		SwarmID: read.name(&f.SwarmID), ManagerDeploymentID: read.name(f.ManagerDeploymentID),
		DeploymentID: read.name(f.DeploymentID), CorrelationID: read.name(f.CorrelationID),
	}
	if f.RunID != nil {
		var ok bool
		o.RunID, ok = identity.ParseUUID(*f.RunID)
		read.require(ok)
	}
	if read.broken {
		return Opening{}, errOpening
	}
	return o, nil
}

// Again decides about an opening of what is open already: nil when it says the same, else
// ErrOpened. Who says it does not matter.
func (o Opening) Again(stored Opening) error {
	if o != stored {
		return ErrOpened
	}
	return nil
}

// ParseID reads the id of a task, an approval or a grant, else InvalidRequest.
func ParseID(s string) (string, error) {
	if !IsName(s) {
		return "", errID
	}
	return s, nil
}

// AttributionFields are the attribution headers as they were sent: every value of each.
type AttributionFields struct {
	UserID, ChannelID, Role, InstanceID, TaskID []string
}

// Attribution says on whose behalf, and by which sub-agent, a call is made; "" is unknown.
// User and channel are the axis of usage, never a tenant.
type Attribution struct {
	UserID, ChannelID        string
	Role, InstanceID, TaskID string
}

// NewAttribution validates attribution headers, else InvalidRequest. Each is there at most
// once. They name somebody or something, so the form of a name binds them, too: it is
// printable ASCII of at most 128 characters, without the spaces that prose is made of.
func NewAttribution(f AttributionFields) (Attribution, error) {
	var a Attribution
	for _, header := range []struct {
		values []string
		into   *string
	}{
		{f.UserID, &a.UserID},
		{f.ChannelID, &a.ChannelID},
		{f.Role, &a.Role},
		{f.InstanceID, &a.InstanceID},
		{f.TaskID, &a.TaskID},
	} {
		switch {
		case len(header.values) == 0:
		case len(header.values) > 1 || !IsName(header.values[0]):
			return Attribution{}, errAttribution
		default:
			*header.into = header.values[0]
		}
	}
	return a, nil
}

// or returns s, or what stands in for it where it is "".
func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
