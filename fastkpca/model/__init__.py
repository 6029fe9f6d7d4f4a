"""The fitted model and what one does with it.

=====================  ==========================================================================================
``result``             `KPCAModel`, the record that ``kpca`` returns, and its file; ``reading`` builds projectors
``plan``               candidates and steps of a fit
``projector``          what a model asks of its projector; ``feature_projector`` and ``sample_projector`` are the two
``project``            scores of new rows; ``rows`` converts and checks them
``limits``             limits of T^2 and SPE that a model holds
``shared_map``         one feature map for several models
``selection``          tables of cross-validation
``matlab``             export to MATLAB
``notebook``           tables in notebooks
``monitoring``         package: T^2, SPE, contributions, missing values, health of rows, reports
``statistics``         package: standard errors, bootstrap, importance of columns
``preimages``          package: pre-images and denoising
=====================  ==========================================================================================

Nothing here fits a model or draws, and nothing here asks which map or kernel it has: these answer for themselves
(``base.protocol``).
"""
