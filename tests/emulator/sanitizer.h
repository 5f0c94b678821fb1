// Whether AddressSanitizer watches.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define TERN_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TERN_UNDER_ASAN 1
#endif
#endif
