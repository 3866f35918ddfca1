from symad.doors.exported_problems import export_problem as export_problem
from symad.tracing.values.containers import flatten as flatten, shape_of as shape_of
