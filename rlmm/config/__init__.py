"""
Every setting of the service, its default and its reason; where it stands, and what it is here.

`loading.load` is what others call. Sections are plain frozen values of the packages that they
configure; pydantic knows of them only in `merging`, and nothing here touches a network.
"""
