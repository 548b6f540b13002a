// The part of <type_traits> that kernels use, for NVRTC. Written for Tessera from the C++ standard,
// section [meta].
#pragma once

namespace std {

template <class T, T v>
struct integral_constant {
    static constexpr T value = v;
    using value_type = T;
    using type = integral_constant;
    __host__ __device__ constexpr operator value_type() const noexcept { return v; }
    __host__ __device__ constexpr value_type operator()() const noexcept { return v; }
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class...>
using void_t = void;

// A type under one name.
template <class T>
struct __tessera_type {
    using type = T;
};

// Choices.
template <bool condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> : __tessera_type<T> {};
template <bool condition, class T, class F>
struct conditional : __tessera_type<T> {};
template <class T, class F>
struct conditional<false, T, F> : __tessera_type<F> {};

// const, volatile, references, pointers, arrays.
template <class T>
struct remove_const : __tessera_type<T> {};
template <class T>
struct remove_const<const T> : __tessera_type<T> {};
template <class T>
struct remove_volatile : __tessera_type<T> {};
template <class T>
struct remove_volatile<volatile T> : __tessera_type<T> {};
template <class T>
struct remove_cv : remove_const<typename remove_volatile<T>::type> {};
template <class T>
struct add_const : __tessera_type<const T> {};
template <class T>
struct add_volatile : __tessera_type<volatile T> {};
template <class T>
struct add_cv : __tessera_type<const volatile T> {};
template <class T>
struct remove_reference : __tessera_type<T> {};
template <class T>
struct remove_reference<T&> : __tessera_type<T> {};
template <class T>
struct remove_reference<T&&> : __tessera_type<T> {};
template <class T, class = void>
struct add_lvalue_reference : __tessera_type<T> {};
template <class T>
struct add_lvalue_reference<T, void_t<T&>> : __tessera_type<T&> {};
template <class T, class = void>
struct add_rvalue_reference : __tessera_type<T> {};
template <class T>
struct add_rvalue_reference<T, void_t<T&&>> : __tessera_type<T&&> {};
template <class T>
struct remove_pointer : __tessera_type<T> {};
template <class T>
struct remove_pointer<T*> : __tessera_type<T> {};
template <class T>
struct remove_pointer<T* const> : __tessera_type<T> {};
template <class T>
struct remove_pointer<T* volatile> : __tessera_type<T> {};
template <class T>
struct remove_pointer<T* const volatile> : __tessera_type<T> {};
template <class T, class = void>
struct add_pointer : __tessera_type<T> {};
template <class T>
struct add_pointer<T, void_t<typename remove_reference<T>::type*>>
    : __tessera_type<typename remove_reference<T>::type*> {};
template <class T>
struct remove_extent : __tessera_type<T> {};
template <class T>
struct remove_extent<T[]> : __tessera_type<T> {};
template <class T, decltype(sizeof(0)) n>
struct remove_extent<T[n]> : __tessera_type<T> {};
template <class T>
struct remove_all_extents : __tessera_type<T> {};
template <class T>
struct remove_all_extents<T[]> : remove_all_extents<T> {};
template <class T, decltype(sizeof(0)) n>
struct remove_all_extents<T[n]> : remove_all_extents<T> {};

// Kinds of types.
template <class T, class U>
struct is_same : false_type {};
template <class T>
struct is_same<T, T> : true_type {};
template <class T, class... Others>
struct __tessera_is_one_of : bool_constant<(is_same<T, Others>::value || ...)> {};
template <class T>
struct is_void : is_same<void, typename remove_cv<T>::type> {};
template <class T>
struct is_null_pointer : is_same<decltype(nullptr), typename remove_cv<T>::type> {};
template <class T>
struct is_integral
    : __tessera_is_one_of<typename remove_cv<T>::type, bool, char, signed char, unsigned char,
                          wchar_t, char16_t, char32_t, short, unsigned short, int, unsigned int,
                          long, unsigned long, long long, unsigned long long> {};
template <class T>
struct is_floating_point
    : __tessera_is_one_of<typename remove_cv<T>::type, float, double, long double> {};
template <class T>
struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T>
struct is_fundamental
    : bool_constant<is_arithmetic<T>::value || is_void<T>::value || is_null_pointer<T>::value> {};
template <class T>
struct is_compound : bool_constant<!is_fundamental<T>::value> {};
template <class T>
struct is_pointer : bool_constant<!is_same<typename remove_cv<T>::type,
                                           typename remove_pointer<T>::type>::value> {};
template <class T>
struct is_lvalue_reference : false_type {};
template <class T>
struct is_lvalue_reference<T&> : true_type {};
template <class T>
struct is_rvalue_reference : false_type {};
template <class T>
struct is_rvalue_reference<T&&> : true_type {};
template <class T>
struct is_reference : bool_constant<!is_same<T, typename remove_reference<T>::type>::value> {};
template <class T>
struct is_array : bool_constant<!is_same<T, typename remove_extent<T>::type>::value> {};
template <class T>
struct is_const : bool_constant<!is_same<T, typename remove_const<T>::type>::value> {};
template <class T>
struct is_volatile : bool_constant<!is_same<T, typename remove_volatile<T>::type>::value> {};
template <class T>
struct is_enum : bool_constant<__is_enum(T)> {};
template <class T>
struct is_class : bool_constant<__is_class(T)> {};
template <class T>
struct is_union : bool_constant<__is_union(T)> {};
template <class T>
struct is_function : bool_constant<!is_const<const T>::value && !is_reference<T>::value> {};

// Properties.
template <class T, bool = is_arithmetic<T>::value>
struct __tessera_is_signed : bool_constant<(T(-1) < T(0))> {};
template <class T>
struct __tessera_is_signed<T, false> : false_type {};
template <class T>
struct is_signed : __tessera_is_signed<typename remove_cv<T>::type> {};
template <class T>
struct is_unsigned : bool_constant<is_arithmetic<T>::value && !is_signed<T>::value> {};
template <class T>
struct is_trivial : bool_constant<__is_trivial(T)> {};
template <class T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T>
struct is_standard_layout : bool_constant<__is_standard_layout(T)> {};
template <class T>
struct is_empty : bool_constant<__is_empty(T)> {};
template <class T>
struct is_polymorphic : bool_constant<__is_polymorphic(T)> {};
template <class T>
struct is_abstract : bool_constant<__is_abstract(T)> {};
template <class T>
struct is_final : bool_constant<__is_final(T)> {};
template <class T>
struct alignment_of : integral_constant<decltype(sizeof(0)), alignof(T)> {};
template <class T>
struct rank : integral_constant<decltype(sizeof(0)), 0> {};
template <class T>
struct rank<T[]> : integral_constant<decltype(sizeof(0)), rank<T>::value + 1> {};
template <class T, decltype(sizeof(0)) n>
struct rank<T[n]> : integral_constant<decltype(sizeof(0)), rank<T>::value + 1> {};

// Relations.
template <class Base, class Derived>
struct is_base_of : bool_constant<__is_base_of(Base, Derived)> {};
template <class From, class To>
struct is_convertible : bool_constant<__is_convertible_to(From, To)> {};
template <class T, class... Arguments>
struct is_constructible : bool_constant<__is_constructible(T, Arguments...)> {};
template <class T>
struct is_default_constructible : is_constructible<T> {};
template <class T, class U>
struct is_assignable : bool_constant<__is_assignable(T, U)> {};

// Changes.
template <class T>
struct decay {
    using __tessera_bare = typename remove_reference<T>::type;
    using type = typename conditional<
        is_array<__tessera_bare>::value, typename remove_extent<__tessera_bare>::type*,
        typename conditional<is_function<__tessera_bare>::value,
                             typename add_pointer<__tessera_bare>::type,
                             typename remove_cv<__tessera_bare>::type>::type>::type;
};
template <class T>
struct underlying_type : __tessera_type<__underlying_type(T)> {};

template <class T>
struct __tessera_make_signed;
template <class T>
struct __tessera_make_unsigned;
#define TESSERA_SIGNS(name) \
    template <> \
    struct __tessera_make_signed<signed name> : __tessera_type<signed name> {}; \
    template <> \
    struct __tessera_make_signed<unsigned name> : __tessera_type<signed name> {}; \
    template <> \
    struct __tessera_make_unsigned<signed name> : __tessera_type<unsigned name> {}; \
    template <> \
    struct __tessera_make_unsigned<unsigned name> : __tessera_type<unsigned name> {};
TESSERA_SIGNS(char)
TESSERA_SIGNS(short)
TESSERA_SIGNS(int)
TESSERA_SIGNS(long)
TESSERA_SIGNS(long long)
#undef TESSERA_SIGNS
template <>
struct __tessera_make_signed<char> : __tessera_type<signed char> {};
template <>
struct __tessera_make_unsigned<char> : __tessera_type<unsigned char> {};
template <class T>
struct make_signed : __tessera_make_signed<T> {};
template <class T>
struct make_signed<const T> : add_const<typename __tessera_make_signed<T>::type> {};
template <class T>
struct make_unsigned : __tessera_make_unsigned<T> {};
template <class T>
struct make_unsigned<const T> : add_const<typename __tessera_make_unsigned<T>::type> {};

template <class... T>
struct common_type;
template <class T>
struct common_type<T> : decay<T> {};
template <class T, class U>
struct common_type<T, U>
    : decay<decltype(false ? *static_cast<typename decay<T>::type*>(nullptr)
                           : *static_cast<typename decay<U>::type*>(nullptr))> {};
template <class T, class U, class V, class... More>
struct common_type<T, U, V, More...>
    : common_type<typename common_type<T, U>::type, V, More...> {};

// Logic.
template <class... B>
struct conjunction : bool_constant<(bool(B::value) && ...)> {};
template <class... B>
struct disjunction : bool_constant<(bool(B::value) || ...)> {};
template <class B>
struct negation : bool_constant<!bool(B::value)> {};

// Shorter names.
template <bool condition, class T = void>
using enable_if_t = typename enable_if<condition, T>::type;
template <bool condition, class T, class F>
using conditional_t = typename conditional<condition, T, F>::type;
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
using remove_volatile_t = typename remove_volatile<T>::type;
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
using add_const_t = typename add_const<T>::type;
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using add_lvalue_reference_t = typename add_lvalue_reference<T>::type;
template <class T>
using add_rvalue_reference_t = typename add_rvalue_reference<T>::type;
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class T>
using add_pointer_t = typename add_pointer<T>::type;
template <class T>
using remove_extent_t = typename remove_extent<T>::type;
template <class T>
using remove_all_extents_t = typename remove_all_extents<T>::type;
template <class T>
using decay_t = typename decay<T>::type;
template <class T>
using underlying_type_t = typename underlying_type<T>::type;
template <class T>
using make_signed_t = typename make_signed<T>::type;
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <class... T>
using common_type_t = typename common_type<T...>::type;

template <class T, class U>
inline constexpr bool is_same_v = is_same<T, U>::value;
template <class T>
inline constexpr bool is_void_v = is_void<T>::value;
template <class T>
inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T>
inline constexpr bool is_fundamental_v = is_fundamental<T>::value;
template <class T>
inline constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T>
inline constexpr bool is_reference_v = is_reference<T>::value;
template <class T>
inline constexpr bool is_array_v = is_array<T>::value;
template <class T>
inline constexpr bool is_const_v = is_const<T>::value;
template <class T>
inline constexpr bool is_enum_v = is_enum<T>::value;
template <class T>
inline constexpr bool is_class_v = is_class<T>::value;
template <class T>
inline constexpr bool is_function_v = is_function<T>::value;
template <class T>
inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T>
inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;
template <class Base, class Derived>
inline constexpr bool is_base_of_v = is_base_of<Base, Derived>::value;
template <class From, class To>
inline constexpr bool is_convertible_v = is_convertible<From, To>::value;
template <class T, class... Arguments>
inline constexpr bool is_constructible_v = is_constructible<T, Arguments...>::value;

}  // namespace std
