package database

// Roles names a service's database and the three roles that may connect to it.
type Roles struct {
	// Owner owns the database and its schema. Only migrations use it.
	Owner string
	// Service is what the service connects as; its rights come from the migrations' grants.
	Service string
	// Reader may read what migrations grant to it, for operators and reports.
	Reader string
	// Database is the database's name.
	Database string
}

// Ingest holds the names of the ingest service.
var Ingest = Roles{
	Owner:    "verbatim_ingest_owner",
	Service:  "verbatim_ingest",
	Reader:   "verbatim_ingest_reader",
	Database: "verbatim_ingest",
}

// Auditview holds the names of the auditview service.
var Auditview = Roles{
	Owner:    "verbatim_auditview_owner",
	Service:  "verbatim_auditview",
	Reader:   "verbatim_auditview_reader",
	Database: "verbatim_auditview",
}

func (r Roles) names() []string { return []string{r.Owner, r.Service, r.Reader} }
