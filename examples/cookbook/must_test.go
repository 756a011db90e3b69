package cookbook_test

// must is for programs that fit a page: what fails ends them.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
