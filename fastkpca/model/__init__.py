"""The fitted model and what one does with it: save, project, pre-images, novelty, export.

Nothing here fits a model (that is ``fit``), and nothing here draws (that is ``plot``).
"""
