package api

import (
	"net/http"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

var ruleRoutes = []route{
	{pattern: "GET " + wire.PathRules, role: authority.RoleViewer, wait: readWait, do: (*Server).rules},
	{pattern: "POST " + wire.PathRules, role: authority.RoleAdmin, wait: batchWait, do: (*Server).setRules},
	{pattern: "DELETE " + wire.PathRules + "/{kind}/{name}", role: authority.RoleAdmin, wait: readWait, do: (*Server).dropRule},
	{pattern: "GET " + wire.PathAccounts, role: authority.RoleViewer, wait: readWait, do: (*Server).accounts},
}

func (s *Server) rules(c call) (any, error) {
	whole, err := flag(c.r, "whole")
	if err != nil {
		return nil, err
	}
	return s.backend.Rules.Rules(c.ctx, whole)
}

func (s *Server) setRules(c call) (any, error) {
	var f rules.File
	if err := decode(c, maxBatch, true, &f); err != nil {
		return nil, err
	}
	return s.backend.Rules.SetRules(c.ctx, c.who.name, f)
}

func (s *Server) dropRule(c call) (any, error) {
	kind, name := c.r.PathValue("kind"), c.r.PathValue("name")
	if !rules.ValidName(name) {
		return nil, Errorf(http.StatusBadRequest, "%.80q is no name of a rule", name)
	}
	return s.backend.Rules.DropRule(c.ctx, c.who.name, kind, name)
}

func (s *Server) accounts(c call) (any, error) {
	as, err := s.backend.Rules.Accounts(c.ctx)
	return listed(c, as, err, func(a wire.Account) string { return a.Name + "\x00" + a.User })
}
