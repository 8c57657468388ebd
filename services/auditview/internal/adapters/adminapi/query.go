package adminapi

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/gin-gonic/gin"
)

// maxNumber is the greatest number of a parameter: the greatest that JSON readers keep exact.
const maxNumber = 1<<53 - 1

var digits = regexp.MustCompile(`^[0-9]+$`)

// number reads decimal digits up to maxNumber.
func number(s string) (int64, bool) {
	if !digits.MatchString(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= maxNumber
}

// numbers reads the named query parameters; an absent one is 0. It answers 400 and
// reports false when one is given twice or is no number, or the query is malformed.
// Parameters that it does not name are none of its business.
func numbers(c *gin.Context, names ...string) (values []int64, ok bool) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	ok = err == nil
	for _, name := range names {
		var n int64
		if given := query[name]; len(given) > 0 {
			var valid bool
			n, valid = number(given[0])
			ok = ok && valid && len(given) == 1
		}
		values = append(values, n)
	}
	if !ok {
		fail(c, http.StatusBadRequest, codeInvalidRequest, "a query parameter is not a decimal number up to 2^53-1, given once")
	}
	return values, ok
}

// text reads a query parameter that valid accepts; an absent one is "". It answers 400 and
// reports false when it is given twice or valid refuses it, or the query is malformed.
func text(c *gin.Context, name string, valid func(string) bool) (value string, ok bool) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	given := query[name]
	if err == nil && len(given) == 0 {
		return "", true
	}
	if err != nil || len(given) > 1 || !valid(given[0]) {
		fail(c, http.StatusBadRequest, codeInvalidRequest, "a query parameter is not of its form, given once")
		return "", false
	}
	return given[0], true
}
