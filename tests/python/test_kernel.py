"""Jupyter's own questions to a kernel, asked of the real one."""

import jupyter_kernel_test
import pytest
from jupyter_client.manager import start_new_kernel


class KernelTests(jupyter_kernel_test.KernelTests):
    kernel_name = "kernetes"
    language_name = "kubernetes"
    file_extension = ".yaml"
    code_hello_world = "%echo hello, world"


class IopubWelcomeTests(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "kernetes"
    support_iopub_welcome = True
