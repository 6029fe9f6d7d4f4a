"""The fitted model and what one does with it.

Here live the record that ``kpca`` returns (``result``), what it asks of its projector (``projector``) and the two
there are (``feature_projector``, ``sample_projector``), its file (``reading``), the conversion of new rows (``rows``),
T^2, SPE and limits (``novelty``), which columns make a row unusual (``contributions``), all of these for new rows
(``monitor``), pre-images (``preimage``, ``search``, ``descent``, ``ridge``), one feature map for several models
(``shared_map``) and the export to MATLAB (``matlab``). Nothing here fits a model or draws, and nothing here asks which
map or kernel it has: these answer for themselves (``base.protocol``).
"""
