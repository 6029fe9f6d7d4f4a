"""Monitoring of new rows with a fitted model.

A row x has the scores z_j, of variance latent_j, and the image phi(x), measured from the mean. Its statistics are
T^2 = sum_j z_j^2 / latent_j and SPE = |phi(x)|^2 - sum_j z_j^2, the latter over the first ``spe_components`` of the
model if it has such a number. A row with either above its limit is an alarm.

=================  ==============================================================================================
``novelty``        T^2 and SPE of rows, and their limits
``contributions``  contributions of the columns to T^2 and SPE of a row
``fill``           missing values of rows
``health``         columns of new rows that are constant, have gaps, or leave their range
``run``            runs of alarms in time
``monitor``        all of these for new rows
``verdict``        one line for each alarm
=================  ==============================================================================================
"""
