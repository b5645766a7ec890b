/* ops/subject.h - wraps check/subject.h for tests: an error fails the running test. */
#ifndef VKT_TEST_SUBJECT_H
#define VKT_TEST_SUBJECT_H

#include "check/subject.h"
#include "support/host.h"

typedef vkt_side side;
typedef vkt_subject subject;

/* Makes the subject of `seed`, with the references of outputs and gradients. The caller frees the subject. */
static inline void subject_make(subject *s, const vkt_op *op, uint64_t seed)
{
    const vkt_host h = vkt_test_host();
    assert_int_equal(vkt_subject_make(&h, s, op, seed), VKT_OK);
    vkt_subject_forward(s);
    vkt_subject_backward(s);
}

static inline void subject_begin(subject *s, uint64_t seed)
{
    const vkt_host h = vkt_test_host();
    assert_int_equal(vkt_subject_begin(&h, s, seed), VKT_OK);
}

static inline void subject_input(subject *s, const vkt_case_input *c, const float *data)
{
    assert_int_equal(vkt_subject_input(s, c, data), VKT_OK);
}

static inline void subject_set_output(subject *s, vkt_tensor out)
{
    assert_int_equal(vkt_subject_set_output(s, out), VKT_OK);
}

static inline void subject_set(side *v, const float *data, size_t n)
{
    assert_int_equal(n, vkt_side_count(v));
    vkt_side_set(v, data, n);
}

#define subject_forward vkt_subject_forward
#define subject_backward vkt_subject_backward
#define subject_free vkt_subject_free
#define side_count vkt_side_count
#define side_get vkt_side_get

#endif
