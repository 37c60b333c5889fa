"""The one place that names concrete classes: settings, build, reload, runtime, the default middleware list."""
