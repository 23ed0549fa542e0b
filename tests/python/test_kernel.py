"""Jupyter's own questions to a kernel: all of them to the kernel of words, and to the real one in its own language."""

import jupyter_kernel_test


class WordsTests(jupyter_kernel_test.KernelTests):
    kernel_name = "words"
    language_name = "kubernetes"
    file_extension = ".yaml"
    code_hello_world = "print hello, world"
    code_stderr = "warn careful"
    completion_samples = [{"text": "pr", "matches": {"print"}}, {"text": "p", "matches": {"print", "partial", "page", "panic"}}]
    complete_code_samples = ["print a"]
    incomplete_code_samples = ["print a\\"]
    invalid_code_samples = ["nonsense"]
    code_page_something = "page long"
    code_generate_error = "fail why"
    code_execute_result = [{"code": "result 3", "result": "3"}, {"code": "result three", "result": "three"}]
    code_display_data = [{"code": "show a", "mime": "text/plain"}]
    code_history_pattern = "result 3*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "print"
    code_clear_output = "clear"


class KernelTests(jupyter_kernel_test.KernelTests):
    kernel_name = "kernetes"
    language_name = "kubernetes"
    file_extension = ".yaml"
    code_hello_world = "%echo hello, world"


class IopubWelcomeTests(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "kernetes"
    support_iopub_welcome = True
