"""
Built-in hooks: one module per group, each also an executable for other agents.

The agent imports the module that is named as the config's group. A hook module defines three functions::

    def command(config, working):  # the argv to execute; may write files into the directory ``working``
    def environment(config, outputs):  # environment variables as a dict; raises ValueError for an unusable config
    def read_outputs(config, outputs):  # output values by name, read after the process has ended

``config`` is the document's entry of the run; ``outputs`` is a path prefix for output files.

Example of a hook that runs Python code::

    import sys

    def command(config, working):
        return [sys.executable, "-c", config["config"]]

    def environment(config, outputs):
        return {"RESULT_FILE": str(outputs)}

    def read_outputs(config, outputs):
        return {"result": outputs.read_text()} if outputs.exists() else {}
"""
