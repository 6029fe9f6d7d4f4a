# cython: language_level=3
"""Memory of temporary arrays that is used again: what numpy frees in a scope waits there for the next array.

glibc gives blocks above a threshold back to the system at once, and takes them anew, page by page, each filled with
zeros. It raises the threshold when that happens, unless the environment sets one of its limits, and Dask starts its
workers so (MALLOC_TRIM_THRESHOLD_): a pass whose tiles take 2 MB then spends as long in the system as in its sums.

The handler (numpy's NEP 49) is that of a context, so of a thread, and ends with the scope; what waits then is freed.
Arrays may outlive it: each holds the handler that its memory came from. Any thread may free one: the GIL keeps the
others out of the handler then, and where there is none a lock does.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset, strcpy


cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *, size_t) noexcept
        void *(*calloc)(void *, size_t, size_t) noexcept
        void *(*realloc)(void *, void *, size_t) noexcept
        void (*free)(void *, void *, size_t) noexcept
    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator
    object PyDataMem_SetHandler(object)
    int _import_array() except -1

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    typedef PyMutex pool_lock;
    #define lock_pool(lock) PyMutex_Lock(lock)
    #define unlock_pool(lock) PyMutex_Unlock(lock)
    #else
    typedef char pool_lock;
    #define lock_pool(lock) ((void)(lock))
    #define unlock_pool(lock) ((void)(lock))
    #endif
    """
    ctypedef struct pool_lock:
        pass
    void lock_pool(pool_lock *lock) noexcept
    void unlock_pool(pool_lock *lock) noexcept


_import_array()

cdef enum:
    HEADER = 64  # bytes before each block, which hold its size: keeps the alignment that vector loads like
    LEAST = 1 << 16  # bytes of a block that is worth keeping
    MOST = 1 << 26  # bytes that wait at any time
    SLOTS = 32


cdef struct Pool:
    PyDataMem_Handler handler
    pool_lock lock  # for all below
    bint open
    int waiting
    size_t held
    void *block[SLOTS]


cdef inline size_t *size_of(void *block) noexcept:
    return <size_t *>(<char *>block - HEADER)


cdef inline size_t rounded(size_t size) noexcept:
    if size < LEAST:
        return size
    return (size + LEAST - 1) // LEAST * LEAST


cdef void *take_waiting(Pool *pool, size_t size) noexcept:
    """A block of this size that waits, or NULL."""
    cdef void *found = NULL
    cdef int i
    lock_pool(&pool.lock)
    for i in range(pool.waiting - 1, -1, -1):  # the last that was freed may still be in cache
        if size_of(pool.block[i])[0] == size:
            found = pool.block[i]
            pool.waiting -= 1
            pool.held -= size
            while i < pool.waiting:
                pool.block[i] = pool.block[i + 1]
                i += 1
            break
    unlock_pool(&pool.lock)
    return found


cdef void *take(void *ctx, size_t size) noexcept:
    cdef void *found
    cdef char *fresh
    size = rounded(size)
    if size >= LEAST:
        found = take_waiting(<Pool *>ctx, size)
        if found is not NULL:
            return found
    if size > <size_t>-1 - HEADER:
        return NULL
    fresh = <char *>malloc(size + HEADER)
    if fresh is NULL:
        return NULL
    (<size_t *>fresh)[0] = size
    return fresh + HEADER


cdef void *take_zeros(void *ctx, size_t count, size_t each) noexcept:
    cdef char *fresh
    cdef void *block
    cdef size_t size = count * each
    if each and size // each != count:
        return NULL
    if rounded(size) < LEAST:
        fresh = <char *>calloc(1, size + HEADER)
        if fresh is NULL:
            return NULL
        (<size_t *>fresh)[0] = size
        return fresh + HEADER
    block = take(ctx, size)
    if block is not NULL:
        memset(block, 0, size)
    return block


cdef void *change(void *ctx, void *block, size_t size) noexcept:
    cdef char *fresh
    if block is NULL:
        return take(ctx, size)
    size = rounded(size)
    if size > <size_t>-1 - HEADER:
        return NULL
    fresh = <char *>realloc(size_of(block), size + HEADER)
    if fresh is NULL:
        return NULL
    (<size_t *>fresh)[0] = size
    return fresh + HEADER


cdef void give(void *ctx, void *block, size_t size) noexcept:
    cdef Pool *pool = <Pool *>ctx
    cdef size_t own
    cdef int i
    if block is NULL:
        return
    own = size_of(block)[0]
    lock_pool(&pool.lock)
    if not pool.open or own < LEAST or own > MOST:
        unlock_pool(&pool.lock)
        free(size_of(block))
        return
    while pool.waiting and (pool.waiting == SLOTS or pool.held + own > MOST):  # who has waited longest leaves
        pool.held -= size_of(pool.block[0])[0]
        free(size_of(pool.block[0]))
        pool.waiting -= 1
        for i in range(pool.waiting):
            pool.block[i] = pool.block[i + 1]
    pool.block[pool.waiting] = block
    pool.waiting += 1
    pool.held += own
    unlock_pool(&pool.lock)


cdef void set_open(Pool *pool, bint is_open) noexcept:
    """What waits is freed where the pool is closed."""
    lock_pool(&pool.lock)
    pool.open = is_open
    while pool.waiting and not is_open:
        pool.waiting -= 1
        pool.held -= size_of(pool.block[pool.waiting])[0]
        free(size_of(pool.block[pool.waiting]))
    unlock_pool(&pool.lock)


cdef void gone(object capsule) noexcept:
    cdef Pool *pool = <Pool *>PyCapsule_GetPointer(capsule, "mem_handler")
    set_open(pool, False)
    free(pool)


cdef class Reuse:
    """A scope, for one ``with``, in which numpy's temporary arrays use the memory of those before them."""

    cdef object capsule, before

    def __cinit__(self):
        cdef Pool *pool = <Pool *>calloc(1, sizeof(Pool))
        if pool is NULL:
            raise MemoryError()
        strcpy(pool.handler.name, "fastkpca")
        pool.handler.version = 1
        pool.handler.allocator.ctx = pool
        pool.handler.allocator.malloc = take
        pool.handler.allocator.calloc = take_zeros
        pool.handler.allocator.realloc = change
        pool.handler.allocator.free = give
        self.capsule = PyCapsule_New(pool, "mem_handler", gone)

    def __enter__(self):
        set_open(<Pool *>PyCapsule_GetPointer(self.capsule, "mem_handler"), True)
        self.before = PyDataMem_SetHandler(self.capsule)
        return self

    def __exit__(self, *exc):
        cdef Pool *pool = <Pool *>PyCapsule_GetPointer(self.capsule, "mem_handler")
        PyDataMem_SetHandler(self.before)
        self.before = None
        set_open(pool, False)

    @property
    def waiting(self):
        """Bytes that wait for the next array."""
        return (<Pool *>PyCapsule_GetPointer(self.capsule, "mem_handler")).held
