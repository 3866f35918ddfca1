from symad.classroom.answers.answer_page import CheckedAnswer as CheckedAnswer
from symad.classroom.answers.trace_answers import CheckedTrace as CheckedTrace
from symad.classroom.code_reading.machine_code import CodeReading as CodeReading
from symad.classroom.comparison.compare import Comparison as Comparison, StepErrors as StepErrors
from symad.classroom.confusion.exhibit import Exhibit as Exhibit
from symad.classroom.derivation.derivation_steps import Derivation as Derivation
from symad.classroom.drawing.drawing import Drawing as Drawing
from symad.classroom.drawing.growth import Growth as Growth
from symad.classroom.drawing.spy import Spy as Spy
from symad.classroom.exercises.exercise import Exercise as Exercise, Solutions as Solutions, Worksheet as Worksheet
from symad.classroom.expansion.expand import Expansion as Expansion
from symad.classroom.explanation.explanation_document import Explanation as Explanation
from symad.classroom.verification.verification_result import BoxVerification as BoxVerification
from symad.classroom.verification.verify import Verification as Verification
from symad.compiling.plan import CompilationPlan as CompilationPlan
from symad.derivatives.interpolation import MixedPartials as MixedPartials
from symad.derivatives.modes import Choice as Choice
from symad.derivatives.tensor import SymmetricTensor as SymmetricTensor, TaylorPolynomial as TaylorPolynomial
from symad.doors.callbacks import Solution as Solution
from symad.doors.data_rows import Rowwise as Rowwise
from symad.doors.ode import InitialValueProblem as InitialValueProblem, Trajectory as Trajectory
from symad.tracing.trace import Trace as Trace
from symad.tracing.values.sparse_matrix import SparseMatrix as SparseMatrix
