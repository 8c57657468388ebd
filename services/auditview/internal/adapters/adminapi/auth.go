package adminapi

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"verbatim.internal/services/auditview/internal/app"
)

const administratorKey = "administrator"

// authenticate lets an administrator's bearer through. It reads the Authorization header
// and nothing else; two of them are none.
func (a *api) authenticate(c *gin.Context) {
	administrator, ok := app.Administrator{}, false
	if values := c.Request.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, found := strings.Cut(values[0], " "); found && strings.EqualFold(scheme, "Bearer") {
			var err error
			administrator, ok, err = a.Authenticator.Authenticate(c.Request.Context(), token)
			if err != nil {
				a.failWith(c, err)
				return
			}
		}
	}
	if !ok {
		c.Header("WWW-Authenticate", "Bearer")
		fail(c, http.StatusUnauthorized, codeUnauthorized, "an administrator's bearer is needed")
		return
	}
	c.Set(administratorKey, administrator)
}

// require refuses administrators without a permission.
func (a *api) require(permission string) gin.HandlerFunc {
	return func(c *gin.Context) {
		administrator, _ := c.MustGet(administratorKey).(app.Administrator)
		if !administrator.May(permission) {
			fail(c, http.StatusForbidden, codeForbidden, "the administrator lacks the permission")
		}
	}
}
