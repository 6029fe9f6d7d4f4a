"""The fitted model and what one does with it.

Here live the record that ``kpca`` returns (``result``), the two ways in which it projects (``projectors``), its file
(``stored``), the one way in for new rows (``rows``), T^2, SPE and limits (``novelty``, ``spe``), pre-images
(``preimage``, ``descent``, ``ridge``) and the export to MATLAB. Nothing here fits a model or draws, and nothing here
asks which map or kernel it has: these answer for themselves (``base.protocol``).
"""
