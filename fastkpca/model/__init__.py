"""The fitted model: projection of new rows, monitoring, statistics, pre-images, files and export.

=====================  ==========================================================================================
``result``             `KPCAModel`, the record that ``kpca`` returns, and its file; ``reading`` builds projectors
``plan``               candidates and steps of a fit
``projector``          interface of projectors; ``feature_projector`` (a map), ``sample_projector`` (training rows)
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

No module here fits a model or draws. None depends on the kind of map or kernel, which have methods for what differs
(``base.protocol``).
"""
