package adminapi

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/services/auditview/internal/app"
)

func (a *api) registryChanges(c *gin.Context) {
	query, ok := numbers(c, "limit", "before")
	if !ok {
		return
	}
	var filter app.RegistryFilter
	if filter.Kind, ok = text(c, "kind", isKind); !ok {
		return
	}
	if filter.Name, ok = text(c, "name", isName); !ok {
		return
	}
	page, err := a.Reader.RegistryChanges(c.Request.Context(), filter, query[0], query[1])
	if err != nil {
		a.failWith(c, err)
		return
	}
	list := httpapi.RegistryChangeList{
		Schema: httpapi.SchemaRegistryChanges, Items: make([]httpapi.RegistryChange, 0, len(page.Changes)), HasMore: page.HasMore,
	}
	for _, change := range page.Changes {
		list.Items = append(list.Items, registryChange(change))
	}
	if page.HasMore {
		list.NextBefore = &page.NextBefore
	}
	answer(c, http.StatusOK, list)
}

func isKind(s string) bool {
	return slices.Contains([]string{
		registryv1.KindClient, registryv1.KindRoute, registryv1.KindSession, registryv1.KindRun, registryv1.KindController,
	}, s)
}

// maxName is the greatest length of an entry's name, in characters.
const maxName = 191

// isName takes what a name can be. PostgreSQL has no text with U+0000.
func isName(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxName && !strings.ContainsRune(s, 0)
}

func registryChange(c registryv1.Change) httpapi.RegistryChange {
	view := httpapi.RegistryChange{
		ChangeID: c.ChangeID, Number: c.Number, Kind: c.Kind, Name: c.Name, Action: c.Action,
		Fields: c.Fields, Changes: make([]httpapi.RegistryFieldChange, 0, len(c.Changes)),
		Actor: httpapi.RegistryActor{Kind: c.Actor.Kind}, RecordedAt: httpapi.FormatTime(c.RecordedAt),
	}
	for _, f := range c.Changes {
		view.Changes = append(view.Changes, httpapi.RegistryFieldChange{Field: f.Field, From: f.From, To: f.To})
	}
	if c.Actor.Name != "" {
		view.Actor.Name = &c.Actor.Name
	}
	return view
}
