/* 200 small language models and encoders: no certificate of a cut is broken. */
#include "lm_attack.h"

static void no_certificate_is_broken(void **state)
{
    (void)state;
    la_many(1, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_certificate_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
