package httpapi

import "github.com/gin-gonic/gin"

// agentAuthRoutes serves Agent Auth v1.
func (a *api) agentAuthRoutes(_ *gin.Engine) {}
