"""
The commands of ``stoker-agent``, one module each: ``add_arguments(parser)`` and ``main(options, paths)``.

Only the module of the command that runs is imported, so that the running agent does not load the others.
"""
