"""The plan of a rolled program, where `codegen.emission.plan` looks for it."""

from codegen.regions.emission import RolledPlan

__all__ = ["RolledPlan"]
