"""What the sweep knows about single operators: expected differences and their reasons, and how some must be called.

An entry is the name in PyTorch's operator database, with `.variant` where there is one. A reason that no longer holds fails the sweep, so that these lists
only ever say what is true.
"""

ALL = "every dtype"

# Entries whose results differ from the CPU's: entry -> (dtypes, reason).
_SPARSE = "the device has no sparse layouts"
KNOWN = {
    "to_sparse": (ALL, _SPARSE),
    "sparse.mm.reduce": (ALL, _SPARSE),
    "sparse.sampled_addmm": (ALL, _SPARSE),
    "renorm": (("complex64",), "for p = inf the gradient is finite here and NaN on the CPU, where zeros without memory take part in it"),
}

# Entries of which no value can be compared: entry -> reason.
_UNINITIALISED = "returns memory that nobody has written"
_JITERATOR = "compiles CUDA source: there is no reference on the CPU"
NOT_COMPARABLE = {
    "empty": _UNINITIALISED,
    "empty_like": _UNINITIALISED,
    "empty_permuted": _UNINITIALISED,
    "empty_strided": _UNINITIALISED,
    "new_empty": _UNINITIALISED,
    "new_empty_strided": _UNINITIALISED,
    "jiterator_2inputs_2outputs": _JITERATOR,
    "jiterator_4inputs_with_extra_args": _JITERATOR,
    "jiterator_binary": _JITERATOR,
    "jiterator_binary_return_by_ref": _JITERATOR,
    "jiterator_unary": _JITERATOR,
}
UNINITIALISED = {entry for entry, reason in NOT_COMPARABLE.items() if reason is _UNINITIALISED}

# Operators that want their other tensors on the CPU, whatever the device of the first.
ARGUMENTS_STAY_ON_THE_HOST = {"tensor_split"}

# Operators that write nothing into an out= tensor of unusual strides, or write outside it, on the CPU alone too.
STRIDED_OUT_IS_BROKEN = {"fft.ihfft2", "fft.ihfftn", "linalg.lu", "lu_unpack", "tril", "triu"}


def known(entry, dtype):
    """The reason why `entry` is allowed to differ for the dtype of this name, or None."""
    dtypes, reason = KNOWN.get(entry, ((), None))
    return reason if dtypes is ALL or dtype in dtypes else None
