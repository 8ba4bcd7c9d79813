"""Type variables of public classes: a class without types in brackets gets `Any`.

So `Task` and `Message` alone are right with strict checkers, too. Python knows variables with a
default since 3.13; checkers always know them, and nobody else asks for the default.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    T = TypeVar("T", default=Any)
    U = TypeVar("U", default=Any)
    T_co = TypeVar("T_co", covariant=True, default=Any)
    T_contra = TypeVar("T_contra", contravariant=True, default=Any)
    In_contra = TypeVar("In_contra", contravariant=True, default=Any)
    Out_co = TypeVar("Out_co", covariant=True, default=Any)
    K_co = TypeVar("K_co", covariant=True, default=Any)
    L_co = TypeVar("L_co", covariant=True, default=Any)
    R_co = TypeVar("R_co", covariant=True, default=Any)
    V_co = TypeVar("V_co", covariant=True, default=Any)
    Row = TypeVar("Row", default=dict[str, Any])
else:
    from typing import TypeVar

    K = TypeVar("K")
    T = TypeVar("T")
    U = TypeVar("U")
    T_co = TypeVar("T_co", covariant=True)
    T_contra = TypeVar("T_contra", contravariant=True)
    In_contra = TypeVar("In_contra", contravariant=True)
    Out_co = TypeVar("Out_co", covariant=True)
    K_co = TypeVar("K_co", covariant=True)
    L_co = TypeVar("L_co", covariant=True)
    R_co = TypeVar("R_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
    Row = TypeVar("Row")
