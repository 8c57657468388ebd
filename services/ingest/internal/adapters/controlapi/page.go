package controlapi

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	contract "verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/refusal"
)

const (
	defaultLimit = 50
	maxLimit     = 100
	// maxPageBytes bounds a page beside its count: a route's instructions may be long.
	maxPageBytes = 4 << 20
)

var errQuery = refusal.New(refusal.InvalidRequest, "a query parameter is given twice or is not what it takes: limit a number from 1 up, after and client_app_id a key")

// pageQuery asks for the entries after a key.
type pageQuery struct {
	after string
	limit int
}

// parsePage reads limit and after, which is what key accepts and returns.
func parsePage(c *gin.Context, key func(string) (string, bool)) (pageQuery, error) {
	after, err := parameter(c, "after", key)
	if err != nil {
		return pageQuery{}, err
	}
	q := pageQuery{after, defaultLimit}
	_, err = parameter(c, "limit", func(s string) (string, bool) {
		n, err := strconv.ParseUint(s, 10, 63)
		q.limit = int(min(n, maxLimit))
		return s, err == nil && n > 0
	})
	return q, err
}

// parameter reads one query parameter, which key accepts and returns; absent or empty it is "".
func parameter(c *gin.Context, name string, key func(string) (string, bool)) (string, error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil || len(query[name]) > 1 {
		return "", errQuery
	}
	given := query.Get(name)
	if given == "" {
		return "", nil
	}
	value, ok := key(given)
	if !ok {
		return "", errQuery
	}
	return value, nil
}

// list answers a page of at most limit entries. found has one more when there is one, and
// a page that would become too large ends earlier; never with nothing.
func list[T, V any](a *api, c *gin.Context, schema string, limit int, found []T, err error, view func(T) V, key func(T) string) {
	out := contract.RegistryList{Schema: schema, Items: []jsontext.Value{}}
	size := 0
	for i, entry := range found {
		item := encode(view(entry))
		if size += len(item); i == limit || i > 0 && size > maxPageBytes {
			after := key(found[i-1])
			out.HasMore, out.NextAfter = true, &after
			break
		}
		out.Items = append(out.Items, item)
	}
	a.answer(c, http.StatusOK, out, err)
}

// encode writes a view, which always is JSON: its texts were decoded or stored as UTF-8.
func encode(v any) jsontext.Value {
	data, err := json.Marshal(v)
	if err != nil {
		panic("controlapi: a view that is not JSON")
	}
	return data
}
