"""The operators of the PyPI package ``liger-kernel``, as other people wrote them: do they profile unedited, and does
the estimate agree with the times their authors published. Nothing of the package is part of this project."""
