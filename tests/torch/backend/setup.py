# SPDX-License-Identifier: Apache-2.0
"""Compiles trampoline.cc; pyproject.toml has everything else."""

import setuptools
from torch.utils import cpp_extension

setuptools.setup(
    ext_modules=[
        cpp_extension.CppExtension(
            "rollcall_torch_nccl._trampoline", ["trampoline.cc"], extra_compile_args=["-O1"]
        )
    ],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
)
