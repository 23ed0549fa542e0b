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
    code_hello_world = "echo hello, world"
    code_stderr = "kubectl get pods"  # "No resources found", and yet exit code 0
    completion_samples = [
        {"text": "kubectl desc", "matches": {"describe"}},
        {"text": "%adv", "matches": {"%advance"}},
        {"text": "%plot des", "matches": {"desired"}},
        {"text": "apiVersion: apps/v1\nkind: Dep", "matches": {"Deployment"}},
        {"text": "apiVersion: apps/v1\nkind: Deployment\nspec:\n  rep", "matches": {"replicas:"}},
    ]
    complete_code_samples = [
        "kubectl get pods",
        "%advance 30s",
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n",
        '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}',
    ]
    incomplete_code_samples = [
        "kubectl get pods \\",
        "echo 'a",
        "apiVersion: v1\nkind: Namespace\nmetadata:",
        '{"apiVersion": "v1", "kind": "Namespace"',
        "%%rust\nfn main() {",
    ]
    invalid_code_samples = ["apiVersion: v1\n\tkind: Pod\n", "metadata: name: a\n"]
    code_page_something = "kubectl explain pods | less"
    code_generate_error = "%kill pod/none"
    # Results are kept for scores.
    code_execute_result = [{"code": "%exercise 01-keep-three\n%check --score 3", "result": "0"}]
    code_display_data = [
        {"code": "docker run -d --name web nginx", "mime": "text/plain"},
        {"code": "%plot pods docker", "mime": "image/svg+xml"},
    ]
    code_history_pattern = "*check --score*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "kubectl get"
    code_clear_output = "%clear"


class IopubWelcomeTests(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "kernetes"
    support_iopub_welcome = True
