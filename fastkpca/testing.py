class ConformanceError(AssertionError): pass
def check_thread_safety(k): raise ConformanceError("thread")
