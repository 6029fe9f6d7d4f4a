"""Monitoring of new rows with a fitted model.

=================  ==============================================================================================
``novelty``        T^2 and SPE of rows, and their limits
``contributions``  which columns make a row unusual
``fill``           missing values of rows
``health``         columns of new rows that are constant, have gaps, or leave their range
``run``            runs of alarms in time
``monitor``        all of these for new rows
``verdict``        one line for each alarm
=================  ==============================================================================================
"""
